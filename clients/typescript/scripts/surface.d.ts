/** See surface.js. */
export function surfaceOf(document: object): string[];

/** See surface.js. */
export function unsentParameters(document: object, source: string, elsewhere: readonly string[]): string[];
