import { startService } from 'petstore-service';
import { application } from './application.js';

await startService(application);
