export { DocsPagesModule } from './src/docs-pages.module.js';
