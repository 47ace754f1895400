/** `.env.example` and the table of settings in docs/operating.md, made from the settings of the platform and of the parts. */

const HEAD = `\
# Settings of the Pet Store Service. Copy this file to .env, or set environment variables, which override .env. Settings
# are read once, at start. A wrong setting stops the start with a message that names it. Each line shows the default.
`;

/** The titles of `.env.example`, by the first setting below each. */
const TITLES = {
  PORT: 'Server',
  DATABASE_URL: 'Database',
  BOOTSTRAP_API_KEY: 'API',
  RATE_LIMIT_PER_MINUTE: 'Limits',
  // Without the rate limit.
  MAX_BODY_BYTES: 'Limits',
  SHUTDOWN_DELAY_MS: 'Shutdown',
  LOG_LEVEL: 'Log and traces',
};

/** The settings that have a variable; a limit has none. */
function variables(settings) {
  return Object.values(settings).filter(({ name }) => name !== '');
}

/** The text of `.env.example`. */
export function environmentExample(settings) {
  const shownTitles = new Set();
  const entries = variables(settings).map(({ name, shown, accepts, about }) => {
    const isNew = name in TITLES && !shownTitles.has(TITLES[name]);
    shownTitles.add(TITLES[name]);
    const title = isNew && `\n# --- ${TITLES[name]} ${'-'.repeat(112 - TITLES[name].length)}\n`;
    return `${title || ''}\n${comment(`${about} Accepts ${accepts}.`)}#${name}=${shown}\n`;
  });
  return HEAD + entries.join('');
}

/** A page with the table of settings between its two markers. */
export function withSettingsTable(page, settings) {
  const rows = variables(settings).map(({ name, shown, accepts }) => [`\`${name}\``, shown && `\`${shown}\``, accepts]);
  return replaceTable(page, 'settings', [['setting', 'default', 'accepts'], ...rows]);
}

/** A page with a table, whose first row is its head, between the two markers of a name. */
export function replaceTable(page, name, table) {
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  const lines = table.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`);
  lines.splice(1, 0, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`);
  const marked = `<!-- ${name} -->\n\n${lines.join('\n')}\n\n<!-- /${name} -->`;
  return page.replace(new RegExp(`<!-- ${name} -->.*<!-- /${name} -->`, 's'), () => marked);
}

/** Comment lines of at most 119 characters. */
function comment(text) {
  const lines = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < 119) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`# ${word}`);
  }
  return lines.map((line) => `${line}\n`).join('');
}
