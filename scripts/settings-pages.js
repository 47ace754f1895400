/** `.env.example` and the table of settings in docs/operating.md, made from the declarations of libs/settings/src/settings.ts. */

const HEAD = `\
# Settings of the Pet Store Service. Copy this file to .env, or set environment variables, which override .env. Settings
# are read once, at start. A wrong setting stops the start with a message that names it. Each line shows the default.
`;

/** The text of `.env.example`. */
export function environmentExample(groups) {
  const sections = Object.entries(groups).map(([title, settings]) => {
    const entries = Object.values(settings).map(
      ({ name, shown, accepts, about }) => `\n${comment(`${about} Accepts ${accepts}.`)}#${name}=${shown}\n`,
    );
    return `\n# --- ${title} ${'-'.repeat(112 - title.length)}\n${entries.join('')}`;
  });
  return HEAD + sections.join('');
}

/** A page with the table of settings between its two markers. */
export function withSettingsTable(page, groups) {
  const rows = Object.values(groups).flatMap((settings) =>
    Object.values(settings).map(({ name, shown, accepts }) => [`\`${name}\``, shown && `\`${shown}\``, accepts]),
  );
  const table = [['setting', 'default', 'accepts'], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column].length)));
  const lines = table.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`);
  lines.splice(1, 0, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`);
  const marked = `<!-- settings -->\n\n${lines.join('\n')}\n\n<!-- /settings -->`;
  return page.replace(/<!-- settings -->.*<!-- \/settings -->/s, () => marked);
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
