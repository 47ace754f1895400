import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { HealthController } from './health.controller.js';
import { ReadinessChecks } from './readiness-checks.js';

/** Health checks for load balancers and process managers. Modules add their own with `@ReadinessCheck`. */
@Module({ imports: [DiscoveryModule], controllers: [HealthController], providers: [ReadinessChecks] })
export class HealthModule {}
