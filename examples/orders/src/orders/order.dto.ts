import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import {
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  int64Of,
  Int64Parameter,
  Int64Property,
  IntegerProperty,
  LimitParameter,
} from 'petstore-service/platform';
import type { OrderEntity } from './order.entity.js';

@ApiSchema({ description: 'A pet to order.' })
export class NewOrder {
  @Int64Property({ description: 'The pet.', example: 1042 })
  petId: bigint;

  @IntegerProperty({ description: 'How many.', example: 1, minimum: 1, maximum: 100 })
  quantity: number;
}

@ApiSchema({ description: 'An order.' })
export class Order extends NewOrder {
  @Int64Property({ description: 'Unique identifier of the order.', example: 1 })
  id: bigint;

  @ApiProperty({ description: 'When it was ordered.', format: 'date-time', example: '2026-11-22T09:30:00.000Z' })
  orderedAt: Date;

  constructor(given: Order) {
    super();
    Object.assign(this, given);
  }
}

export class ListOrdersQuery {
  @LimitParameter('Maximum number of orders returned.')
  limit = DEFAULT_PAGE_SIZE;

  @Int64Parameter({ description: 'Return only orders of this pet.', required: false })
  petId?: bigint;

  @CursorParameter('Start of the page: copy it from the previous `Link` and keep the same `petId`.')
  cursor?: string;
}

export function toOrder({ id, petId, quantity, orderedAt }: OrderEntity): Order {
  return new Order({ id: int64Of(id), petId: int64Of(petId), quantity, orderedAt });
}
