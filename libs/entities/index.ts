export { SharedRepository } from './src/shared.repository.js';
