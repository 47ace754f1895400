export { DocsPagesModule } from './src/docs-pages.controller.js';
