import { startService } from './start/start-service.js';

await startService();
