import { transport } from './transport.js';

export const WEBSOCKETS = transport(
  '@nestjs/websockets',
  '12.1.1',
  { WebSocketGateway: 'classes', SubscribeMessage: 'methods' },
  { classes: { 'websockets:is_gateway': 'gateway' }, methods: { 'websockets:message_mapping': 'message handler' } },
);
