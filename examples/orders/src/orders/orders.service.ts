import { Injectable } from '@nestjs/common';
import {
  Clock,
  defineConstraintErrors,
  defineError,
  type IdempotencyKey,
  type Kept,
  type Page,
} from 'petstore-service/platform';
import type { ListOrdersQuery, NewOrder, Order } from './order.dto.js';
import { OrderEntity } from './order.entity.js';
import { OrdersRepository } from './orders.repository.js';

export const NO_SUCH_PRODUCT = defineError('order_without_product', 409, 'The product that is ordered does not exist.');

defineConstraintErrors(OrderEntity, { fk_store_order_product: NO_SUCH_PRODUCT });

/** Orders of products. */
@Injectable()
export class OrdersService {
  constructor(
    private readonly repository: OrdersRepository,
    private readonly clock: Clock,
  ) {}

  /** @throws ApiError INVALID_CURSOR */
  list(query: ListOrdersQuery): Promise<Page<Order>> {
    return this.repository.list(query);
  }

  /** @throws ApiError NO_SUCH_PRODUCT */
  place(order: NewOrder, key: IdempotencyKey | undefined): Promise<Kept<Order>> {
    return this.repository.insert(order, new Date(this.clock.now()), key);
  }
}
