import { Injectable } from '@nestjs/common';
import { ApiError, Clock, defineError, type IdempotencyKey, type Kept, type Page } from 'petstore-service/platform';
import { QueryFailedError } from 'typeorm';
import type { ListOrdersQuery, NewOrder, Order } from './order.dto.js';
import { OrdersRepository } from './orders.repository.js';

export const NO_SUCH_PRODUCT = defineError('order_without_product', 409, 'The product that is ordered does not exist.');

/** SQLSTATE of a row that refers to none (foreign_key_violation). */
const NO_REFERENCE = '23503';

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
  async place(order: NewOrder, key: IdempotencyKey | undefined): Promise<Kept<Order>> {
    try {
      return await this.repository.insert(order, new Date(this.clock.now()), key);
    } catch (error) {
      if (error instanceof QueryFailedError && (error.driverError as { code?: unknown }).code === NO_REFERENCE) {
        throw new ApiError(NO_SUCH_PRODUCT, `There is no product ${order.productId}.`);
      }
      throw error;
    }
  }
}
