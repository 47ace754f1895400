/** The fast paths of this process by name, each with the reason why it is off; undefined if it is on. */
export class FastPaths extends Map<string, string | undefined> {}
