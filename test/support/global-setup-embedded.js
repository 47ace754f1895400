import { register } from 'node:module';

register('./typescript-loader.js', import.meta.url);
const { setUp } = await import('./set-up-embedded.ts');

export default setUp;
