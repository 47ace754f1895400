export { REPLICA_SETTINGS } from './src/replicas.js';
export { ReplicasModule } from './src/replicas.module.js';
