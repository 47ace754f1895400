import './register-typescript.js';

const { setUp } = await import('./set-up-embedded.ts');

export default setUp;
