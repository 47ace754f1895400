/** See breaking-changes.js. */
export function breakingChanges(released: object, current: object): string[];
