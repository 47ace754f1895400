/* The names of a feature in every spelling, and what is wrong with them. */
const pluralize = require('pluralize');
const ts = require('typescript');

/** Most characters of a name, so that names of PostgreSQL with their prefixes stay below 63. */
const MAX_LENGTH = 40;

const NAME = /^[a-z]+(-[a-z]+)*$/;

/** In PostgreSQL 18 these need quotes as names of tables: `reserved` in the table of its appendix C. */
const RESERVED_IN_SQL = new Set(
  (
    'all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation column ' +
    'concurrently constraint create cross current_catalog current_date current_role current_schema current_time ' +
    'current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze from ' +
    'full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit ' +
    'localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references ' +
    'returning right select session_user similar some symmetric system_user table tablesample then to trailing true union ' +
    'unique user using variadic verbose when where window with'
  ).split(' '),
);

/**
 * The feature that a plural name in kebab-case names.
 *
 * @throws Error with one sentence when it is no such name
 */
function featureOf(plural) {
  if (!NAME.test(plural) || plural.length > MAX_LENGTH) {
    throw new Error(
      `'${plural}' cannot name a feature. Take a plural in lower case with hyphens between its words, such as orders or ` +
        `order-items, of ${MAX_LENGTH} characters at most.`,
    );
  }
  const words = plural.split('-');
  const last = words.pop();
  const singular = [...words, pluralize.singular(last)].join('-');
  if (singular === plural) {
    const other = [...words, pluralize.plural(last)].join('-');
    throw new Error(
      other === plural
        ? `'${plural}' has no singular of its own, which the class of one row needs. Take ${plural}-entries, for example.`
        : `'${plural}' is no plural. Take ${other}.`,
    );
  }
  return { plural, singular, table: tableOf(plural, singular) };
}

/** Singular, as the other tables; plural where SQL would need quotes, such as for `order`. */
function tableOf(...names) {
  const table = names
    .reverse()
    .map((name) => name.replaceAll('-', '_'))
    .find((name) => !RESERVED_IN_SQL.has(name));
  if (table === undefined) throw new Error(`'${names[1]}' is a reserved word of SQL. Take another name.`);
  return table;
}

/** A text of the templates with the names of a feature, in the spelling that each place has. */
function withNames(text, { plural, singular, table }) {
  return text.replaceAll('sample_table', table).replace(/sample([-_ ]?)thing(s?)/gi, (found, separator, s) => {
    const words = (s ? plural : singular).split('-');
    if (found === found.toUpperCase()) return words.join(separator).toUpperCase();
    const isCapital = found.startsWith('S');
    const spelt = words.map((word, index) => ((index === 0 ? isCapital : separator === '') ? capital(word) : word));
    return spelt.join(separator);
  });
}

function capital(word) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** @throws Error when the generated code could not declare the names of a feature, because they mean something else in it */
function checkIdentifiers(feature, templates) {
  const [one, many] = ['sampleThing', 'sampleThings'].map((name) => withNames(name, feature));
  const used = new Set(templates.flatMap(identifiersOf));
  const names = [one, many, capital(one), capital(many)];
  const word = names.find((name) => isReserved(name) || used.has(name) || name in globalThis);
  if (word !== undefined) {
    throw new Error(
      `'${word}' means something else in TypeScript or in the generated code. Take store-${feature.plural}, for example.`,
    );
  }
}

function isReserved(name) {
  const token = ts.createScanner(ts.ScriptTarget.Latest, true, undefined, name).scan();
  return token >= ts.SyntaxKind.FirstReservedWord && token <= ts.SyntaxKind.LastFutureReservedWord;
}

/** The names that a file declares or uses, without those of members, which stand behind a dot or a brace. */
function identifiersOf(text) {
  const names = [];
  const visit = (node) => {
    if (ts.isIdentifier(node)) {
      const { parent } = node;
      const isMember =
        (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
        ((ts.isPropertyAssignment(parent) || ts.isClassElement(parent)) && parent.name === node);
      if (!isMember) names.push(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('template.ts', text, ts.ScriptTarget.Latest, true));
  return names;
}

module.exports = { checkIdentifiers, featureOf, withNames };
