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

@ApiSchema({ description: 'A product to order.' })
export class NewOrder {
  @Int64Property({ description: 'The product.', example: 2 })
  productId: bigint;

  @IntegerProperty({ description: 'How many.', example: 1, minimum: 1, maximum: 100 })
  quantity: number;
}

@ApiSchema({ description: 'An order.' })
export class Order extends NewOrder {
  @Int64Property({ description: 'Unique identifier of the order.', example: 1 })
  id: bigint;

  @ApiProperty({ description: 'When it was ordered.', format: 'date-time', example: '2026-11-22T09:30:00.000Z' })
  orderedAt: Date;
}

export class ListOrdersQuery {
  @LimitParameter('Maximum number of orders returned.')
  limit = DEFAULT_PAGE_SIZE;

  @Int64Parameter({ description: 'Return only orders of this product.', required: false })
  productId?: bigint;

  @CursorParameter('Start of the page: copy it from the previous `Link` and keep the same `productId`.')
  cursor?: string;
}

export function toOrder({ id, productId, quantity, orderedAt }: OrderEntity): Order {
  return Object.assign(new Order(), { id: int64Of(id), productId: int64Of(productId), quantity, orderedAt });
}
