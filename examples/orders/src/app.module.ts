import { Module } from '@nestjs/common';
import { PlatformModule } from 'petstore-service';
import { ORDERS } from './app.description.js';
import { OrdersModule } from './orders/orders.module.js';

@Module({ imports: [PlatformModule.forRoot(ORDERS), OrdersModule] })
export class AppModule {}
