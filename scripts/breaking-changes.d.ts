/** See breaking-changes.js. */
export function contractChanges(released: object, current: object): { breaking: string[]; widening: string[] };

/** See breaking-changes.js. */
export function addedOperations(before: object, current: object): string[];

/** An entry of openapi.accepted.json. */
export interface AcceptedChanges {
  version: string;
  reason: string;
  changes: string[];
}

/** See breaking-changes.js. */
export function judgeChanges(
  breaking: readonly string[],
  accepted: readonly Partial<AcceptedChanges>[],
): { refused: string[]; faults: string[] };
