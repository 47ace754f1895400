import { readFileSync } from 'node:fs';
import { environmentExample, withSettingsTable } from '../../scripts/settings-pages.js';
import { SETTING_GROUPS } from '../../libs/settings/src/settings.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('.env.example and the table of settings are those of the declarations: run `npm run generate`', () => {
  expect(read('.env.example')).toBe(environmentExample(SETTING_GROUPS));
  const page = read('docs/operating.md');
  expect(page).toBe(withSettingsTable(page, SETTING_GROUPS));
});
