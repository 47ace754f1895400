/*
 * `npm run generate:feature -- orders`: a whole feature with its table and its tests, which lint, type check and tests accept as it is.
 * `files/` holds it under the name `sample-things`. Nothing is written unless all of it can be.
 */
const { readdirSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const { ModuleDeclarator } = require('@nestjs/schematics');
const { checkIdentifiers, featureOf, withNames } = require('./names.cjs');

const FILES = join(__dirname, 'files');
const TIME_OF_FILES = '1700000000000';
const APP_MODULE = 'src/app.module.ts';
const DOCUMENT = 'openapi.json';

/** @throws Error with one sentence when there cannot be a feature of this name */
module.exports.feature = ({ name, path }) => {
  if (path !== undefined) throw new Error('A feature is a folder of src, so it takes a name and no path.');
  const feature = featureOf(name);
  const files = readdirSync(FILES, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({ path: file.slice(FILES.length + 1), text: readFileSync(file, 'utf8') }));
  checkIdentifiers(
    feature,
    files.map(({ text }) => text),
  );
  return (tree) => {
    checkPlace(tree, feature);
    const time = nextTime(tree);
    const spelt = (text) => withNames(text, feature).replaceAll(TIME_OF_FILES, time);
    for (const { path, text } of files) {
      const target = spelt(path);
      if (tree.exists(target)) throw new Error(`${target} exists. Remove it, or take another name.`);
      tree.create(target, spelt(text));
    }
    addToApplication(tree, feature);
    // Behind the list of the files, which is printed when all of them are written.
    process.once('exit', (code) => code === 0 && process.stdout.write(nextSteps(feature)));
    return tree;
  };
};

/** @throws Error when something of the application has one of the names already */
function checkPlace(tree, { plural, singular, table }) {
  const folder = tree.getDir(`src/${plural}`);
  if (folder.subfiles.length + folder.subdirs.length > 0) {
    throw new Error(`src/${plural} exists. Remove it, or take another name.`);
  }
  const maker = migrationsOf(tree).find((path) => createsTable(table).test(tree.readText(path)));
  if (maker !== undefined) throw new Error(`${maker} makes a table ${table} already. Take another name.`);
  if (!tree.exists(DOCUMENT)) return;
  const { paths, components } = tree.readJson(DOCUMENT);
  const operations = Object.values(paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId));
  const documented = new Set([...Object.keys(components.schemas), ...operations, ...Object.keys(paths)]);
  const spelt = (text) => withNames(text, { plural, singular, table });
  const ours = ['/sample-things', 'SampleThing', 'NewSampleThing'].concat([
    'listSampleThings',
    'createSampleThing',
    'getSampleThing',
    'deleteSampleThing',
  ]);
  const taken = ours.map(spelt).find((name) => documented.has(name));
  if (taken !== undefined) throw new Error(`${DOCUMENT} has ${taken} already. Take another name.`);
}

function migrationsOf(tree) {
  return tree.getDir('migrations').subfiles.map((file) => `migrations/${file}`);
}

function createsTable(table) {
  return new RegExp(`\\bCREATE\\s+TABLE\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?"?${table}\\b`, 'i');
}

/** The time in ms for the name of a migration, behind all others. */
function nextTime(tree) {
  const times = migrationsOf(tree).map((path) => Number(/\/(\d{13})-/.exec(path)?.[1] ?? 0));
  return String(Math.max(Date.now(), ...times.map((time) => time + 1)));
}

function addToApplication(tree, { plural, singular, table }) {
  const name = withNames('SampleThingsModule', { plural, singular, table });
  const text = new ModuleDeclarator().declare(tree.readText(APP_MODULE), {
    ...{ metadata: 'imports', className: name, type: 'module', name: plural },
    ...{ path: `/src/${plural}`, module: `/${APP_MODULE}` },
  });
  if (text.match(new RegExp(`\\b${name}\\b`, 'g')).length !== 2)
    throw new Error(`${APP_MODULE} has no @Module with imports to add ${name} to.`);
  tree.overwrite(APP_MODULE, text);
}

function nextSteps({ plural }) {
  return `
Next:
  npm run generate              openapi.json and the types of the client, made anew
  npm test -- ${plural.padEnd(18)}its tests, on PostgreSQL and on the embedded engine
  npm run petstore -- migrate   makes its table; the embedded engine does so when the service starts
  npm run petstore -- keys create --client <client> --scopes ${plural}:read,${plural}:write
`;
}
