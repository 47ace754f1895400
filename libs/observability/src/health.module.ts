import { Module } from '@nestjs/common';
import { HealthController } from './health.controller.js';

/** Health checks for load balancers and process managers. */
@Module({ controllers: [HealthController] })
export class HealthModule {}
