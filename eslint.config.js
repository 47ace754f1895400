import eslint from '@eslint/js';
import prettier from 'eslint-config-prettier';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import { readdirSync } from 'node:fs';
import tseslint from 'typescript-eslint';

/**
 * Who may import whom inside the platform: each room (a folder of src/platform) and the rooms that it imports.
 * A room may name only rooms above it, so there are no circles. A new room needs a row here.
 * Every room may also import src/config.ts, src/settings and the files at the top of src/platform, except platform.module.ts.
 */
export const PLATFORM_ROOMS = {
  errors: [],
  json: ['errors'],
  internals: ['errors', 'json'],
  deprecation: ['errors', 'internals'],
  'server/requests': ['errors'],
  'server/connections': ['errors', 'server/requests'],
  'server/replies': ['errors', 'json', 'server/connections', 'server/requests'],
  server: ['errors', 'internals', 'json', 'server/connections', 'server/replies', 'server/requests'],
  input: ['deprecation', 'errors', 'internals', 'json', 'server', 'server/requests'],
  'database/removal': [],
  'database/statements': ['internals'],
  'database/connections': ['database/statements', 'errors', 'internals'],
  'database/embedded': ['errors'],
  'database/schema': ['database/connections', 'errors'],
  'database/transfer': ['database/schema', 'errors'],
  'database/availability': ['database/connections', 'internals'],
  'database/sharing': ['database/connections', 'errors'],
  database: [
    'database/availability',
    'database/connections',
    'database/embedded',
    'database/schema',
    'database/sharing',
    'database/statements',
    'errors',
    'internals',
  ],
  'api-keys': ['database', 'database/sharing', 'errors'],
  'key-usage': ['database', 'database/removal'],
  'rate-limit': ['api-keys', 'errors'],
  auth: ['api-keys', 'errors', 'internals', 'key-usage', 'rate-limit'],
  idempotency: ['database', 'database/removal', 'database/sharing', 'errors', 'json', 'server/requests'],

  openapi: ['auth', 'deprecation', 'errors', 'idempotency', 'internals'],
  paging: ['errors', 'input', 'internals', 'json', 'openapi'],
  entities: ['database', 'database/sharing', 'errors', 'idempotency', 'json', 'paging'],
  'docs-pages': ['auth', 'errors', 'json', 'openapi'],
  logging: ['server/requests'],
  metrics: ['auth', 'database', 'errors', 'key-usage', 'logging', 'rate-limit', 'server'],
  observability: ['errors', 'key-usage', 'logging', 'metrics', 'server'],
  tracing: ['server/requests'],
  health: ['auth', 'database', 'errors', 'server'],
  'process-group': ['logging', 'metrics'],
};

const PLATFORM_TOP = 'src/platform/!(platform.module).ts';

/** Features are the folders of src, except these five. */
const FEATURE_NAMES = readdirSync(new URL('src', import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !['platform', 'cli', 'package', 'settings', 'start'].includes(entry.name))
  .map(({ name }) => name);

const FEATURES = 'src/!(platform|cli|package|settings|start)/**';

/** Exceptions of a zone, as the patterns of absolute paths that the rule needs. */
const except = (...paths) => paths.map((path) => `**/${path}`);

/** Who may import whom. Each zone: the importing files, the files they must not import, and exceptions. */
const zones = [
  // Inside the platform.
  ...Object.entries(PLATFORM_ROOMS).map(([room, imported]) => ({
    target: `src/platform/${room}/*`,
    from: 'src/platform/**/*',
    except: except(PLATFORM_TOP, ...[room, ...imported].map((name) => `src/platform/${name}/*`)),
    message: `The table in eslint.config.js does not let '${room}' import that.`,
  })),
  {
    target: PLATFORM_TOP,
    from: 'src/**/*',
    message: 'Every room may import this file, so it imports no other.',
  },

  // Between the parts of the application.
  {
    target: 'src/platform/**/*',
    from: 'src/**/*',
    except: except('src/platform/**/*', 'src/config.ts', 'src/settings/*'),
    message: 'The platform knows no feature, no command and no application: it imports itself and the settings.',
  },
  {
    target: 'src/config.ts',
    from: 'src/**/*',
    except: except('src/settings/*', 'src/platform/errors/*'),
    message: 'Everybody imports config.ts, so config.ts imports only settings and errors.',
  },
  {
    target: 'src/settings/*',
    from: 'src/**/*',
    except: except('src/settings/*', 'src/config.ts', 'src/platform/errors/*', 'src/platform/nearest-name.ts'),
    message: 'Everybody imports the settings, so they import only errors and nearest-name.ts.',
  },
  ...FEATURE_NAMES.map((feature) => ({
    target: `src/${feature}/**/*`,
    from: 'src/**/*',
    except: except(
      `src/${feature}/**/*`,
      'src/platform/**/*',
      'src/config.ts',
      'src/package/platform.ts',
      `${FEATURES}/*.{module,service,entity}.ts`,
    ),
    message: 'A feature imports the platform, config.ts, and the modules, services and entities of other features.',
  })),
  {
    target: 'src/{main,cli,app.setup,app.options,start/start-service}.ts',
    from: `${FEATURES}/*`,
    message: 'Only app.module.ts and commands name features.',
  },
  {
    target: 'src/app.module.ts',
    from: `${FEATURES}/*`,
    except: except(`${FEATURES}/*.module.ts`),
    message: 'The application imports the modules of features.',
  },
  {
    target: ['src/!(cli).ts', 'src/!(cli|package|start)/**/*'],
    from: 'src/cli/**/*',
    message: 'Only cli.ts and start-service.ts import the commands.',
  },
  {
    target: 'src/cli/**/*',
    from: 'src/start/**/*',
    message: 'The start imports the commands.',
  },
  {
    target: '{src,test,bench}/**/*',
    from: ['src/{main,cli}.ts', 'src/package/*'],
    except: except('src/package/platform.ts'),
    message: 'Nobody imports the entry points. Features import package/platform.ts.',
  },
  {
    target: 'src/**/*',
    from: '{test,bench,scripts,migrations}/**/*',
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
    from: [`${FEATURES}/*.{repository,entity}.ts`, 'src/platform/database/**/*'],
    message: 'A controller asks its service.',
  },
  {
    target: `${FEATURES}/*.dto.ts`,
    from: [
      `${FEATURES}/*.{service,repository,controller,module}.ts`,
      'src/platform/{auth,api-keys,key-usage,database,observability}/**/*',
    ],
    message: 'A DTO imports its entity, and what validates and describes its properties.',
  },
];

// When several blocks configure a rule for a file, ESLint uses the last one alone. So each block combines these parts.
const NO_BARRELS = { selector: 'ExportAllDeclaration', message: 'No barrels.' };
const NO_ENVIRONMENT = ['process', 'node:process'].map((name) => ({
  name,
  message: 'Only config.ts and settings/environment-file.ts read it.',
}));
const NO_PRIVATE_MEMBERS = {
  // Node documents these three for implementers of streams.
  selector: 'MemberExpression[property.name=/^_(?!(read|write|writev)$)/]',
  message: 'Only src/platform/internals uses private members of dependencies.',
};
const DOCUMENTED_MODULES = {
  // One name that Nest documents, by its path: `petstore --help` would else load all of Nest. The package has entries.
  regex: '^(?!@nestjs/common/enums/version-type|petstore-service/)(@[^/]+/[^/]+|[^@./:]+)/',
  message: 'Only src/platform/internals imports undocumented modules of dependencies.',
};
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
    files: ['scripts/*.js', 'openapi-tools/*.js', 'clients/*/scripts/*.js', 'test/**/*.js', '*.js'],
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
        createNodeResolver({ extensions: ['.ts', '.js'], extensionAlias: { '.js': ['.ts', '.js'] } }),
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
    files: ['src/**/*.ts'],
    ignores: ['src/platform/internals/*', '**/*.spec.ts'],
    rules: {
      'no-restricted-syntax': ['error', NO_BARRELS, NO_PRIVATE_MEMBERS],
      'no-restricted-imports': [
        'error',
        { paths: NO_ENVIRONMENT, patterns: [AT_MOST_TWO_LEVELS_UP, DOCUMENTED_MODULES] },
      ],
    },
  },
  {
    // Text goes through the log, or through src/cli/terminal.ts.
    files: ['src/**/*.ts'],
    rules: { 'no-console': 'error' },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/config.ts', 'src/settings/environment-file.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only config.ts and settings/environment-file.ts read it.' },
      ],
    },
  },
  {
    // Nest validates a body by the class of its parameter. With `import type` there is no class, and no validation.
    files: ['src/**/*.controller.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        NO_BARRELS,
        NO_PRIVATE_MEMBERS,
        {
          selector: 'ImportDeclaration[importKind="type"][source.value=/\\.dto\\.js$/]',
          message: 'Import the classes of a DTO as values: validation needs them at run time.',
        },
        {
          selector: 'ImportDeclaration[source.value=/package.platform/] > ImportSpecifier[imported.name="Database"]',
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
    files: ['migrations/*.ts'],
    rules: { 'no-restricted-imports': ['error', { patterns: [TYPEORM_ALONE] }] },
  },
  {
    // Answers are `any` in a test: their shape is what the test checks.
    files: ['test/**/*.ts', 'clients/*/test/**/*.ts'],
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
