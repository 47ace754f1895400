type Settings = Readonly<Record<string, { name: string; shown: string; accepts: string; about: string }>>;
export function environmentExample(settings: Settings): string;
export function withSettingsTable(page: string, settings: Settings): string;
