import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { GatewayClients } from './gateway-clients.js';
import { Gateways } from './gateways.js';

/** Authentication and limits of WebSocket gateways. */
@Module({ imports: [DiscoveryModule], providers: [Gateways, GatewayClients] })
export class GatewaysModule {}
