import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { GatewayClients } from './gateway-clients.js';
import { Gateways } from './gateways.js';

/** Authentication and limits of WebSocket gateways. Global: modules open paths of their own through `Gateways`. */
@Global()
@Module({ imports: [DiscoveryModule], providers: [Gateways, GatewayClients], exports: [Gateways] })
export class GatewaysModule {}
