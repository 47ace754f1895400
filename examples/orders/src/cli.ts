import { runCommands } from 'petstore-service';
import { application } from './application.js';

await runCommands(application);
