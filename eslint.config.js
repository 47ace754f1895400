import eslint from '@eslint/js';
import prettier from 'eslint-config-prettier';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import tseslint from 'typescript-eslint';

/** Layers of the platform: each may import those before it, and none after it. */
const PLATFORM_LAYERS = [['errors'], ['http', 'database'], ['auth'], ['lifecycle'], ['openapi', 'operations']];

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

export default tseslint.config(
  { ignores: ['dist', 'coverage', 'node_modules', '.data'] },
  eslint.configs.recommended,
  {
    files: ['scripts/*.js', 'test/**/*.js', '*.js'],
    languageOptions: { globals: { process: 'readonly', URL: 'readonly' } },
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
      'no-restricted-syntax': ['error', { selector: 'ExportAllDeclaration', message: 'No barrels.' }],
      'no-restricted-imports': ['error', { patterns: [{ group: ['../../../*'], message: 'At most two levels up.' }] }],
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
        {
          selector: 'ImportDeclaration[importKind="type"][source.value=/\\.dto\\.js$/]',
          message: 'Import the classes of a DTO as values: validation needs them at run time.',
        },
      ],
    },
  },
  {
    files: ['src/**/*.entity.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { regex: '^(?!typeorm$|\\./[a-z-]+\\.entity\\.js$)', message: 'An entity imports TypeORM alone.' },
          ],
        },
      ],
    },
  },
  {
    files: ['migrations/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: '^(?!typeorm$)', message: 'A migration imports TypeORM alone.' }] },
      ],
    },
  },
  {
    // A feature uses of another one what that one offers: its module, its service, and its entity for a relation.
    files: ['src/!(platform|cli)/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^\\.\\./(?!platform/|config\\.js$).*(?<!\\.(module|service|entity)\\.js)$',
              message: 'Of another feature: its module, service or entity.',
            },
          ],
        },
      ],
    },
  },
  {
    // A test looks into answers whose shape is what it tests.
    files: ['test/**/*.ts'],
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
