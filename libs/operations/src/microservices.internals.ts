import { transport } from './transport.js';

export const MICROSERVICES = transport(
  '@nestjs/microservices',
  '12.1.1',
  {
    MessagePattern: 'methods',
    EventPattern: 'methods',
    GrpcMethod: 'methods',
    GrpcStreamMethod: 'methods',
    GrpcStreamCall: 'methods',
  },
  { classes: {}, methods: { 'microservices:pattern': 'message handler' } },
);
