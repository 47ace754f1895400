type Groups = Readonly<
  Record<string, Readonly<Record<string, { name: string; shown: string; accepts: string; about: string }>>>
>;
export function environmentExample(groups: Groups): string;
export function withSettingsTable(page: string, groups: Groups): string;
