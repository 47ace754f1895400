import eslint from '@eslint/js';
import prettier from 'eslint-config-prettier';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import tseslint from 'typescript-eslint';

/** Layers of the platform: each may import those before it, and none after it. */
const PLATFORM_LAYERS = [
  ['errors'],
  ['json'],
  ['fast-paths'],
  ['input', 'database'],
  ['server'],
  ['api-keys'],
  ['key-usage', 'rate-limit'],
  ['auth'],
  ['deprecation', 'idempotency'],
  ['openapi', 'observability'],
  ['docs-pages', 'process-group'],
];

const FEATURES = './src/!(platform|cli)';

/** Who may import whom. A rule without a check erodes. */
const zones = [
  {
    target: ['./src/config.ts', './src/platform/**/*', `${FEATURES}/**/*`],
    from: ['./src/{app.module,app.setup,main,cli}.ts', './src/cli/**/*'],
    message: 'No module imports the application or the command line.',
  },
  {
    target: './src/**/*',
    from: './src/{main,cli}.ts',
    message: 'Nobody imports the entry points.',
  },
  {
    target: './src/platform/**/*',
    from: `${FEATURES}/**/*`,
    message: 'The platform knows no feature.',
  },
  {
    target: `${FEATURES}/*.{service,repository}.ts`,
    from: ['./src/*/*.{controller,module}.ts'],
    message: 'A service or repository does not look back at who calls it.',
  },
  {
    target: `${FEATURES}/*.controller.ts`,
    from: ['./src/*/*.{repository,entity}.ts', './src/platform/database/**/*'],
    message: 'A controller asks its service.',
  },
  {
    target: `${FEATURES}/*.dto.ts`,
    from: [
      './src/*/*.{service,repository,controller,module}.ts',
      './src/platform/{auth,api-keys,key-usage,database,observability}/**/*',
    ],
    message: 'A DTO knows the entity, and how its properties are checked.',
  },
  ...PLATFORM_LAYERS.flatMap((layers, index) =>
    layers.map((layer) => ({
      target: `./src/platform/${layer}/**/*`,
      from: PLATFORM_LAYERS.slice(index)
        .flat()
        .filter((other) => other !== layer)
        .map((other) => `./src/platform/${other}/**/*`),
      message: `Inside the platform, arrows go one way: ${PLATFORM_LAYERS.map((names) => names.join(', ')).join(' ← ')}.`,
    })),
  ),
];

// ESLint takes the last block that names a rule for a file, whole: so blocks are made of these parts.
const NO_BARRELS = { selector: 'ExportAllDeclaration', message: 'No barrels.' };
const NO_ENVIRONMENT = ['process', 'node:process'].map((name) => ({ name, message: 'Only config.ts reads it.' }));
const AT_MOST_TWO_LEVELS_UP = { group: ['../../../*'], message: 'At most two levels up.' };
const WHAT_OTHER_FEATURES_OFFER = {
  regex: '^\\.\\./(?!platform/|config\\.js$).*(?<!\\.(module|service|entity)\\.js)$',
  message: 'Of another feature: its module, service or entity.',
};
const TYPEORM_AND_ENTITIES = {
  regex: '^(?!typeorm$|\\.{1,2}/([a-z-]+/)?[a-z-]+\\.entity\\.js$)',
  message: 'An entity imports TypeORM and entities alone.',
};
const TYPEORM_ALONE = { regex: '^(?!typeorm$)', message: 'A migration imports TypeORM alone.' };

export default tseslint.config(
  { ignores: ['**/dist', 'coverage', 'node_modules', '.data', 'clients/typescript/src/generated'] },
  eslint.configs.recommended,
  {
    files: ['scripts/*.js', 'clients/*/scripts/*.js', 'test/**/*.js', '*.js'],
    languageOptions: {
      globals: { performance: 'readonly', process: 'readonly', setTimeout: 'readonly', URL: 'readonly' },
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
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      'import-x/no-cycle': ['error', { ignoreExternal: true }],
      'import-x/no-default-export': 'error',
      'import-x/no-restricted-paths': ['error', { zones }],
      'no-restricted-syntax': ['error', NO_BARRELS],
      'no-restricted-imports': ['error', { paths: NO_ENVIRONMENT, patterns: [AT_MOST_TWO_LEVELS_UP] }],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/config.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only config.ts reads it.' },
      ],
      'no-console': 'error',
    },
  },
  {
    // Whoever would validate a body needs its class at run time; `import type` makes the validation vanish silently.
    files: ['src/**/*.controller.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        NO_BARRELS,
        {
          selector: 'ImportDeclaration[importKind="type"][source.value=/\\.dto\\.js$/]',
          message: 'Import the classes of a DTO as values: validation needs them at run time.',
        },
      ],
    },
  },
  {
    files: [`${FEATURES.slice(2)}/**/*.ts`],
    rules: {
      'no-restricted-imports': [
        'error',
        { paths: NO_ENVIRONMENT, patterns: [AT_MOST_TWO_LEVELS_UP, WHAT_OTHER_FEATURES_OFFER] },
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
    // A test looks into answers whose shape is what it tests.
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
