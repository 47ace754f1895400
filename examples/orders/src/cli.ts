import { runCommands } from 'petstore-service';
import { ORDERS } from './app.description.js';

await runCommands(ORDERS, async () => (await import('./app.module.js')).AppModule);
