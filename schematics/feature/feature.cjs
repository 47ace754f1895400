/*
 * `npm run generate:feature -- orders`: a whole feature with its table and its tests, which lint, type check and tests accept as it is,
 * in this repository and in a project on the package. `files/` holds it under the name `sample-things`. Nothing is written unless all
 * of it can be.
 */
const { existsSync, readdirSync, readFileSync } = require('node:fs');
const { join, relative } = require('node:path');
const { ModuleDeclarator } = require('@nestjs/schematics');
const { checkIdentifiers, featureOf, withNames } = require('./names.cjs');

const FILES = join(__dirname, 'files');
/** The name of the platform's package, to which a fork may have given a scope. */
const { name: PLATFORM } = require('../../package.json');
/** The platform's migrations: their sources in this repository, what is compiled in the package. */
const LIBRARIES = ['../../libs', '../../dist/libs']
  .map((path) => join(__dirname, path))
  .find((path) => existsSync(join(path, 'access')));
const TIME_OF_FILES = '1700000000000';
const APP_MODULE = 'src/app.module.ts';
const DOCUMENT = 'openapi.json';

/** The section of the guide for what most features need next. */
const CONSTRAINTS = 'docs/extending.md#how-do-i-make-a-name-unique-or-refer-to-another-row';

/** What differs: the door of the platform, the folder of migrations, and the runner of tests. */
const REPOSITORY = { platform: '#platform', migrations: 'migrations', leftOut: /^test\/[^/]+\.test\.ts$/, nextSteps };
const PROJECT = {
  platform: `${PLATFORM}/platform`,
  migrations: 'src/migrations',
  leftOut: /^test\/api\//,
  nextSteps: nextStepsOfProject,
};

/** @throws Error with one sentence when there cannot be a feature of this name */
module.exports.feature = ({ name, path }) => {
  if (typeof name !== 'string') {
    throw new Error('A feature needs a name, a plural such as orders: npm run generate:feature -- orders.');
  }
  if (path !== undefined) throw new Error('A feature is a folder of src, so it takes a name and no path.');
  const feature = featureOf(name);
  const files = readdirSync(FILES, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({ path: relative(FILES, file), text: readFileSync(file, 'utf8') }));
  checkIdentifiers(
    feature,
    files.map(({ text }) => text),
  );
  return (tree) => {
    const isProject = PLATFORM in (tree.readJson('package.json').dependencies ?? {});
    const { platform, migrations, leftOut, nextSteps } = isProject ? PROJECT : REPOSITORY;
    checkPlace(tree, feature, migrations);
    const time = nextTime(tree, migrations);
    const spelt = (text) => withNames(text, feature).replaceAll(TIME_OF_FILES, time);
    for (const { path, text } of files.filter(({ path }) => !leftOut.test(path))) {
      const target = spelt(path.replace(/^migrations/, migrations));
      if (tree.exists(target)) throw new Error(`${target} exists. Remove it, or take another name.`);
      const imported = text
        .replaceAll("'#platform'", `'${platform}'`)
        .replaceAll("'petstore-service/", `'${PLATFORM}/`);
      tree.create(target, spelt(imported));
    }
    addToApplication(tree, feature);
    // Behind the list of the files, which is printed when all of them are written.
    process.once('exit', (code) => code === 0 && process.stdout.write(nextSteps(feature)));
    return tree;
  };
};

/** @throws Error when something of the application has one of the names already */
function checkPlace(tree, { plural, singular, table }, migrations) {
  const folder = tree.getDir(`src/${plural}`);
  if (folder.subfiles.length + folder.subdirs.length > 0) {
    throw new Error(`src/${plural} exists. Remove it, or take another name.`);
  }
  const made = filesIn(tree, migrations).map((path) => ({ path, text: tree.readText(path) }));
  const maker = [...made, ...platformMigrations()].find(({ text }) => createsTable(table).test(text));
  if (maker !== undefined) throw new Error(`${maker.path} makes a table ${table} already. Take another name.`);
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

function filesIn(tree, folder) {
  return tree.getDir(folder).subfiles.map((file) => `${folder}/${file}`);
}

function platformMigrations() {
  return readdirSync(LIBRARIES, { recursive: true })
    .filter((path) => /[/\\]migrations[/\\]\d{13}-[\w-]+\.[jt]s$/.test(path))
    .map((path) => ({ path: `The platform's ${path}`, text: readFileSync(join(LIBRARIES, path), 'utf8') }));
}

function createsTable(table) {
  return new RegExp(`\\bCREATE\\s+TABLE\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?"?${table}\\b`, 'i');
}

/** The time in ms for the name of a migration, behind all others. */
function nextTime(tree, migrations) {
  const times = filesIn(tree, migrations).map((path) => Number(/\/(\d{13})-/.exec(path)?.[1] ?? 0));
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
  npm run petstore -- keys create --client <client> --scopes ${plural}:read,${plural}:write,${plural}:delete
An operation that you add later under one of these scopes is open to every key that has it.
A unique name, a foreign key, a PATCH: ${CONSTRAINTS}
`;
}

function nextStepsOfProject({ plural }) {
  return `
Next:
  npm run build
  npm test                      its tests, on the embedded engine
The command migrate makes its table; the embedded engine does so when the service starts.
Clients need keys with the scopes ${plural}:read, ${plural}:write and ${plural}:delete, by the command keys create.
An operation that you add later under one of these scopes is open to every key that has it.
A unique name, a foreign key, a PATCH: node_modules/${PLATFORM}/${CONSTRAINTS}
`;
}
