import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const CLOCK =
  'Take the time from a Clock (kube/clock.ts): now() for ages and deadlines, wall() for times that objects carry.';

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', 'out/**', 'out.partial/**', 'site/dist/**', 'site/.vitepress/cache/**'] },
  js.configs.recommended,
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-non-null-assertion': 'error',
      // `const { left: _left, ...rest } = all` is how a field is left out
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true, varsIgnorePattern: '^_' }],
      '@typescript-eslint/prefer-nullish-coalescing': 'off', // '' is as good as absent in most API fields
      complexity: ['error', 12],
      'max-depth': ['error', 4],
      'max-params': ['error', 4],
      'max-lines': ['error', { max: 300 }],
      eqeqeq: 'error',
    },
  },
  {
    files: [
      '**/*.test.ts',
      'bed/**/*.ts',
      'e2e/**/*.ts',
      'bench/**/*.ts',
      'release/**/*.ts',
      'test/**/*.ts',
      '**/testing/**/*.ts',
    ],
    rules: {
      '@typescript-eslint/no-unused-expressions': 'off', // chai's property assertions
      '@typescript-eslint/no-non-null-assertion': 'off', // a test that meets undefined fails, which is right
    },
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    ignores: [
      'kube/clock.ts',
      '**/*.test.ts',
      'bed/**',
      'e2e/**',
      'bench/**',
      'release/**',
      'test/**',
      '**/testing/**',
    ],
    rules: {
      'no-restricted-properties': [
        'error',
        ...['Date', 'performance'].map((object) => ({ object, property: 'now', message: CLOCK })),
        ...['hrtime', 'uptime'].map((property) => ({ object: 'process', property, message: CLOCK })),
      ],
      'no-restricted-syntax': [
        'error',
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: CLOCK },
        { selector: "CallExpression[callee.name='Date']", message: CLOCK },
      ],
    },
  },
  { files: ['**/*.js'], languageOptions: { globals: { console: 'readonly', process: 'readonly' } } },
);
