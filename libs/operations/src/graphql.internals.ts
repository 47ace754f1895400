import { transport } from './transport.js';

export const GRAPHQL = transport(
  '@nestjs/graphql',
  '14.0.3',
  {
    Query: 'methods',
    Mutation: 'methods',
    Subscription: 'methods',
    ResolveField: 'methods',
    ResolveReference: 'methods',
  },
  {
    classes: {},
    methods: {
      'graphql:resolver_type': 'resolver',
      'graphql:resolve_property': 'resolver',
      'graphql:resolve_reference': 'resolver',
    },
  },
);
