import type { Reach } from '#runtime';
export function withReachesTable(page: string, reaches: readonly Reach[]): string;
