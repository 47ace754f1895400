/** The table of settings in docs/operating.md, made from the settings of the platform and of the parts. */

/** The settings that have a variable; a limit has none. */
function variables(settings) {
  return Object.values(settings).filter(({ name }) => name !== '');
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
