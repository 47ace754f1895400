/**
 * Reports the public API of the package: what its entry points (`exports` of package.json) export, from the compiler's
 * declarations. Writes one file per entry point to `api-report/`; with `--check` it fails when a file there differs.
 *
 * A report has the declaration of each export, and of each type of this package that such a declaration names, without
 * comments and private members. So it changes when code of others may be affected.
 *
 * Not rolldown-plugin-dts: its releases for Node.js 20 ended with 0.23, which requires pre-releases of Babel.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import ts from 'typescript';

const ROOT = join(import.meta.dirname, '..');
const REPORTS = join(ROOT, 'api-report');
const DIST = join(ROOT, 'dist') + sep;

const { name, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** The entry points with types, without the parts: the name that others import, and the file of declarations. */
const entries = Object.entries(exports).flatMap(([path, { types }]) =>
  types === undefined || path.startsWith('./parts/') ? [] : [[join(name, path), join(ROOT, types)]],
);
const missing = entries.find(([, file]) => !existsSync(file));
if (missing) {
  process.stderr.write(`${relative(ROOT, missing[1])} is missing. Run: npm run build\n`);
  process.exit(1);
}

const options = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  // Declarations are printed unchanged, so those of other packages and of JavaScript are not needed.
  noLib: true,
  types: [],
};
const host = ts.createCompilerHost(options);
host.resolveModuleNameLiterals = (names, file) =>
  names.map(({ text }) =>
    /^[.#]/.test(text)
      ? ts.resolveModuleName(text, file, options, host, undefined, undefined, ts.ModuleKind.ESNext)
      : { resolvedModule: undefined },
  );
const program = ts.createProgram(
  entries.map(([, file]) => file),
  options,
  host,
);
const checker = program.getTypeChecker();
const printer = ts.createPrinter({ removeComments: true });

/** The report of an entry point. */
function reportOf(entry, file) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(file));
  const exported = checker.getExportsOfModule(module).map((symbol) => [symbol.name, original(symbol)]);
  const seen = new Set(exported.map(([, symbol]) => symbol));
  const named = [];
  // Grows during the loop: a type that is found may name others.
  const open = [...seen];
  for (const symbol of open) {
    for (const other of symbolsNamedBy(symbol)) {
      if (seen.has(other)) continue;
      seen.add(other);
      open.push(other);
      named.push(other);
    }
  }
  const public_ = exported.sort(byFirst).map(([exportedName, symbol]) => textOf(symbol, exportedName));
  const reachable = named.map((symbol) => [symbol.name, textOf(symbol, symbol.name)]).sort(byFirst);
  const lines = [
    `# ${entry}`,
    '',
    'Made by `npm run report:package`. `npm run check:package` fails while it differs from the code.',
    '',
    ...fenced(public_),
  ];
  if (reachable.length > 0) {
    lines.push('', 'Named by these declarations, and not exported:', '', ...fenced(reachable.map(([, text]) => text)));
  }
  return `${lines.join('\n')}\n`;
}

function fenced(texts) {
  return ['```ts', texts.join('\n\n'), '```'];
}

function byFirst([a], [b]) {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The symbol behind `export { … } from` and `import`. */
function original(symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

/** The declarations of a symbol in this package. */
function declarationsOf(symbol) {
  return (symbol.declarations ?? []).filter((node) => node.getSourceFile().fileName.startsWith(DIST));
}

function textOf(symbol, exportedName) {
  const texts = declarationsOf(symbol).map((declaration) => {
    // A constant is declared by the statement around it.
    const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
    return printer.printNode(ts.EmitHint.Unspecified, withoutPrivate(node), node.getSourceFile());
  });
  const text = texts.join('\n').replace(/^export declare |^export |^declare /gm, '');
  return exportedName === symbol.name ? text : `${text}\n// exported as ${exportedName}`;
}

/** The node without private members. */
function withoutPrivate(node) {
  if (!ts.isClassDeclaration(node)) return node;
  const members = node.members.filter((member) => !isPrivate(member));
  return ts.factory.updateClassDeclaration(
    node,
    node.modifiers,
    node.name,
    node.typeParameters,
    node.heritageClauses,
    members,
  );
}

function isPrivate(member) {
  const flags = ts.getCombinedModifierFlags(member);
  return (flags & ts.ModifierFlags.Private) !== 0 || (member.name !== undefined && ts.isPrivateIdentifier(member.name));
}

/** The symbols of this package that the declarations of a symbol name, except those of private members. */
function symbolsNamedBy(symbol) {
  const found = new Set();
  const visit = (node) => {
    if (ts.isClassElement(node) && isPrivate(node)) return;
    if (ts.isIdentifier(node)) {
      const other = checker.getSymbolAtLocation(node);
      const target = other && original(other);
      const isNamed = target && declarationsOf(target).some((one) => isDeclaration(one));
      if (isNamed && target !== symbol) found.add(target);
    }
    ts.forEachChild(node, visit);
  };
  for (const declaration of declarationsOf(symbol)) visit(declaration);
  return found;
}

function isDeclaration(node) {
  const isStatement =
    ts.isClassDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isFunctionDeclaration(node) ||
    ts.isEnumDeclaration(node) ||
    ts.isVariableDeclaration(node);
  return isStatement;
}

const isCheck = process.argv.includes('--check');
mkdirSync(REPORTS, { recursive: true });
for (const [entry, file] of entries) {
  const path = join(REPORTS, `${basename(entry)}.md`);
  const report = reportOf(entry, file);
  const kept = existsSync(path) ? readFileSync(path, 'utf8') : '';
  if (report === kept) continue;
  if (!isCheck) {
    writeFileSync(path, report);
    continue;
  }
  const [before, after] = [kept, report].map((text) => new Set(text.split('\n')));
  const changes = [
    ...[...before].filter((line) => !after.has(line)).map((line) => `- ${line}`),
    ...[...after].filter((line) => !before.has(line)).map((line) => `+ ${line}`),
  ];
  process.stderr.write(
    `The public API of ${entry} is not the one of ${relative(ROOT, path)}:\n${changes.join('\n')}\n` +
      'If that is meant, run: npm run report:package, and say it in CHANGELOG.md.\n',
  );
  process.exitCode = 1;
}
