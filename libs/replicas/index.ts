export { ReplicasModule } from './src/replicas.module.js';
