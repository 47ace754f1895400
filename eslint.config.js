import eslint from '@eslint/js';
import prettier from 'eslint-config-prettier';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import { readdirSync } from 'node:fs';
import tseslint from 'typescript-eslint';

/** The optional parts: libraries that a service lists in its definition. None imports another one. */
const PARTS = ['docs-pages', 'key-usage', 'rate-limit', 'tracing'];

/**
 * The libraries (the folders of `libs`), from bottom to top: each may import those before it, by their doors. So there are no circles.
 * A new library takes its place here.
 */
export const LIBRARIES = [
  ...['runtime', 'errors', 'settings', 'embedded-postgres', 'json', 'operations', 'postgres', 'edge', 'input', 'ops'],
  ...['access', 'resources', 'definition', 'commands', 'service', ...PARTS],
];

/** The libraries that one of them may import. */
const belowOf = (library) => LIBRARIES.slice(0, LIBRARIES.indexOf(library)).filter((name) => !PARTS.includes(name));

/** Features are the folders of src. */
const FEATURE_NAMES = readdirSync(new URL('src', import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

const FEATURES = 'src/*/**';

/** Exceptions of a zone, as the patterns of absolute paths that the rule needs. */
const except = (...paths) => paths.map((path) => `**/${path}`);

/** Who may import whom. Each zone: the importing files, the files they must not import, and exceptions. */
const zones = [
  ...LIBRARIES.map((library) => ({
    target: `libs/${library}/{*,src/**/!(*.spec)}.ts`,
    from: '{src,libs}/**/*',
    except: except(`libs/${library}/**/*`, ...belowOf(library).map((name) => `libs/${name}/index.ts`)),
    message: `'${library}' may import the libraries below it, in the order of eslint.config.js. A library has one door, its index.ts.`,
  })),
  {
    target: '{src,test/example}/**/*',
    from: 'libs/**/*',
    except: except('libs/*/index.ts', 'libs/service/platform.ts'),
    message: 'A library has one door, its index.ts: import #name. That of features is #platform.',
  },
  ...FEATURE_NAMES.map((feature) => ({
    target: `src/${feature}/**/*`,
    from: 'src/**/*',
    except: except(`src/${feature}/**/*`, `${FEATURES}/*.{module,service,entity}.ts`),
    message: 'A feature imports libraries, and the modules, services and entities of other features.',
  })),
  {
    target: 'src/{main,cli}.ts',
    from: `${FEATURES}/*`,
    message: 'Only app.module.ts and app.description.ts name features.',
  },
  {
    target: 'src/app.description.ts',
    from: `${FEATURES}/*`,
    except: except(`${FEATURES}/*.commands.ts`),
    message: 'The definition imports the commands of features, which load no framework.',
  },
  {
    target: 'src/app.module.ts',
    from: `${FEATURES}/*`,
    except: except(`${FEATURES}/*.module.ts`),
    message: 'The application imports the modules of features.',
  },
  {
    target: '{src,test,bench,contract}/**/*',
    from: 'src/{main,cli}.ts',
    message: 'Nobody imports the entry points.',
  },
  {
    target: '{src/**/*,libs/*/{*,src/**/*}}',
    from: '{test,bench,contract,scripts,migrations}/**/*',
    message: 'The application imports no test, benchmark, script or migration.',
  },

  // Inside a feature.
  {
    target: `${FEATURES}/*.service.ts`,
    from: `${FEATURES}/*.{controller,module}.ts`,
    message: 'A service does not import its callers.',
  },
  {
    target: `${FEATURES}/*.repository.ts`,
    from: `${FEATURES}/*.{service,controller,module}.ts`,
    message: 'A repository does not import its callers.',
  },
  {
    target: `${FEATURES}/*.controller.ts`,
    from: [`${FEATURES}/*.{repository,entity}.ts`, 'libs/postgres/**/*'],
    message: 'A controller asks its service.',
  },
  {
    target: `${FEATURES}/*.dto.ts`,
    from: [`${FEATURES}/*.{service,repository,controller,module}.ts`, 'libs/{access,postgres,ops}/**/*'],
    message: 'A DTO imports its entity, and what validates and describes its properties.',
  },
];

// When several blocks configure a rule for a file, ESLint uses the last one alone. So each block combines these parts.
const NO_BARRELS = { selector: 'ExportAllDeclaration', message: 'No barrels.' };
const NO_ENVIRONMENT = ['process', 'node:process'].map((name) => ({
  name,
  message: 'Only libs/settings reads it.',
}));
const ONLY_INTERNALS = 'The dependency does not document it: only *.internals.ts touch it, with a check at start.';
/** Modules of dependencies that they do not document, but one: `petstore --help` would else load all of Nest. The package has entries. */
const DOCUMENTED_MODULES = {
  regex: '^(?!@nestjs/common/enums/version-type|petstore-service/)(@[^/]+/[^/]+|[^@./:]+)/|^(node:)?_|^pg-protocol$',
  message: ONLY_INTERNALS,
};
/** Packages with exports that they do not document. */
const DOCUMENTED_IMPORTS = [
  {
    name: '@nestjs/core',
    allowImportNames: [
      ...['APP_FILTER', 'APP_GUARD', 'APP_INTERCEPTOR', 'APP_PIPE', 'DiscoveryModule', 'DiscoveryService'],
      ...['HttpAdapterHost', 'MetadataScanner', 'ModuleRef', 'ModulesContainer', 'NestApplication', 'NestFactory'],
      ...['Reflector', 'RouterModule'],
    ],
  },
  { name: '@nestjs/swagger', importNames: ['DECORATORS', 'DECORATORS_PREFIX'] },
  { name: 'class-validator', importNames: ['getMetadataStorage', 'MetadataStorage'] },
  { name: 'pg', importNames: ['Connection'] },
].map((entry) => ({ ...entry, message: ONLY_INTERNALS }));
/** Undocumented members of dependencies. Add what a file `*.internals.ts` touches. */
const UNDOCUMENTED_MEMBERS = [
  // Node.js. A stream of ours implements `_read`, `_write`, `_writev` and `_destroy`; those of other streams are not ours.
  ...['_\\w+', 'shouldKeepAlive', 'useChunkedEncodingByDefault'],
  // Nest.
  ...[
    'executionContextCreator',
    'getGlobalPipes',
    'isDependencyTreeStatic',
    'isTransient',
    'routerExplorer',
    'routesResolver',
  ],
  // Protected members of Nest's ValidationPipe.
  ...['isDetailedOutputDisabled', 'transformOptions', 'validatorOptions'],
  // class-validator.
  'getTargetValidationMetadatas',
  // TypeORM.
  ...[
    'master',
    'normalizeType',
    'obtainMasterConnection',
    'prepareHydratedValue',
    'preparePersistentValue',
    'releaseCallback',
  ],
  // pg.
  ...['activeQuery', 'prepareValue', 'readyForQuery'],
];
const isUndocumented = (name) => `[${name}=/^(${UNDOCUMENTED_MEMBERS.join('|')})$/]`;
const NO_UNDOCUMENTED_MEMBERS = [
  `MemberExpression${isUndocumented('property.name')}`,
  `MemberExpression[computed=true]${isUndocumented('property.value')}`,
  `ObjectPattern > Property${isUndocumented('key.name')}`,
  `CallExpression[callee.object.name="Object"] Property${isUndocumented('key.name')}`,
  // Express.
  'MemberExpression[property.name="stack"][object.property.name="router"]',
  'VariableDeclarator[init.property.name="router"] Property[key.name="stack"]',
].map((selector) => ({ selector, message: ONLY_INTERNALS }));
const AT_MOST_TWO_LEVELS_UP = { group: ['../../../*'], message: 'At most two levels up.' };
const TYPEORM_AND_ENTITIES = {
  regex: '^(?!typeorm$|\\.{1,2}/.*\\.entity\\.js$)',
  message: 'An entity imports only TypeORM and entities.',
};
const TYPEORM_ALONE = { regex: '^(?!typeorm$)', message: 'A migration imports only TypeORM.' };

export default tseslint.config(
  {
    ignores: [
      '**/dist',
      'examples',
      'bench/built',
      'coverage',
      'node_modules',
      '.data',
      'clients/typescript/src/generated',
      // The templates of `nest g feature`, whose imports hold where they are copied to.
      'schematics/feature/files',
    ],
  },
  eslint.configs.recommended,
  {
    files: ['scripts/*.js', 'clients/*/scripts/*.js', 'test/**/*.js', '*.js'],
    languageOptions: {
      globals: {
        fetch: 'readonly',
        performance: 'readonly',
        process: 'readonly',
        setTimeout: 'readonly',
        URL: 'readonly',
      },
    },
  },
  {
    files: ['schematics/**/*.cjs'],
    languageOptions: {
      sourceType: 'commonjs',
      globals: { __dirname: 'readonly', module: 'writable', process: 'readonly', require: 'readonly' },
    },
  },
  {
    // A Node.js that is too old must be able to read it.
    files: ['scripts/check-system.cjs'],
    languageOptions: {
      ecmaVersion: 5,
      sourceType: 'script',
      globals: { console: 'readonly', process: 'readonly', require: 'readonly' },
    },
  },
  {
    files: ['**/*.ts'],
    extends: tseslint.configs.recommendedTypeChecked,
    plugins: { 'import-x': importX },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    settings: {
      'import-x/extensions': ['.ts', '.js'],
      'import-x/ignore': ['node_modules'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] },
      'import-x/resolver-next': [
        createNodeResolver({
          conditionNames: ['typescript', 'node', 'import', 'default'],
          extensions: ['.ts', '.js'],
          extensionAlias: { '.js': ['.ts', '.js'] },
        }),
      ],
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', name: ['test'], package: 'node:test' }] },
      ],
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      'import-x/no-cycle': ['error', { ignoreExternal: true }],
      'import-x/no-default-export': 'error',
      'import-x/no-restricted-paths': ['error', { basePath: import.meta.dirname, zones }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'no-restricted-globals': ['error', { name: 'it', message: 'Write test.' }],
      'no-restricted-syntax': ['error', NO_BARRELS],
      'no-restricted-imports': ['error', { paths: NO_ENVIRONMENT, patterns: [AT_MOST_TWO_LEVELS_UP] }],
    },
  },
  {
    files: ['{src,libs}/**/*.ts'],
    ignores: ['libs/**/*.{internals,d}.ts', '**/*.spec.ts', 'libs/*/test/**'],
    rules: {
      'no-restricted-syntax': ['error', NO_BARRELS, ...NO_UNDOCUMENTED_MEMBERS],
      'no-restricted-imports': [
        'error',
        {
          paths: [...NO_ENVIRONMENT, ...DOCUMENTED_IMPORTS],
          patterns: [AT_MOST_TWO_LEVELS_UP, DOCUMENTED_MODULES],
        },
      ],
    },
  },
  {
    // Text goes through the log, or through libs/commands/src/terminal.ts.
    files: ['{src,libs}/**/*.ts'],
    rules: { 'no-console': 'error' },
  },
  {
    files: ['{src,libs}/**/*.ts'],
    ignores: ['libs/settings/src/{config,environment-file}.ts', 'src/*/*.settings.ts', 'libs/*/test/**'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only libs/settings reads it.' },
      ],
    },
  },
  {
    // Nest validates a body by the class of its parameter. With `import type` there is no class, and no validation.
    files: ['{src,libs}/**/*.controller.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        NO_BARRELS,
        ...NO_UNDOCUMENTED_MEMBERS,
        {
          selector: 'ImportDeclaration[importKind="type"][source.value=/\\.dto\\.js$/]',
          message: 'Import the classes of a DTO as values: validation needs them at run time.',
        },
        {
          selector: 'ImportDeclaration[source.value=/^#platform$/] > ImportSpecifier[imported.name="Database"]',
          message: 'A controller asks its service.',
        },
      ],
    },
  },
  {
    files: ['src/**/*.entity.ts'],
    rules: { 'no-restricted-imports': ['error', { patterns: [TYPEORM_AND_ENTITIES] }] },
  },
  {
    files: ['{migrations,libs/*/src/migrations}/*.ts'],
    rules: { 'no-restricted-imports': ['error', { patterns: [TYPEORM_ALONE] }] },
  },
  {
    // Answers are `any` in a test: their shape is what the test checks.
    files: ['test/**/*.ts', '{libs,clients}/*/test/**/*.ts'],
    rules: {
      'no-restricted-imports': 'off',
      '@typescript-eslint/no-explicit-any': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  prettier,
);
