import './register-typescript.js';

const { setUp } = await import('./set-up-postgresql.ts');

export default setUp;
