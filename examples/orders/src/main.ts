import { startService } from 'petstore-service';
import { AppModule } from './app.module.js';

await startService(AppModule);
