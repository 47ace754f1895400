import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import {
  ApiError,
  Clock,
  defineError,
  Idempotency,
  type IdempotencyKey,
  type Kept,
  type Page,
} from 'petstore-service/platform';
import { QueryFailedError, Repository } from 'typeorm';
import { type ListOrdersQuery, type NewOrder, type Order, ORDERS_ORDER, toOrder } from './order.dto.js';
import { OrderEntity } from './order.entity.js';

export const NO_SUCH_PET = defineError('order_without_pet', 409, 'The animal that is ordered does not exist.');

/** SQLSTATE of a row that refers to none (foreign_key_violation). */
const NO_REFERENCE = '23503';

@Injectable()
export class OrdersService {
  constructor(
    @InjectRepository(OrderEntity) private readonly orders: Repository<OrderEntity>,
    private readonly idempotency: Idempotency,
    private readonly clock: Clock,
  ) {}

  /** @throws ApiError INVALID_CURSOR */
  list(query: ListOrdersQuery): Promise<Page<OrderEntity>> {
    const { petId } = query;
    const orders = this.orders.createQueryBuilder('placed');
    if (petId !== undefined) orders.where('placed.petId = :petId', { petId: String(petId) });
    return ORDERS_ORDER.read(orders, query, { petId });
  }

  /** @throws ApiError NO_SUCH_PET */
  async place(order: NewOrder, key: IdempotencyKey | undefined): Promise<Kept<Order>> {
    const row = { petId: String(order.petId), quantity: order.quantity, orderedAt: new Date(this.clock.now()) };
    try {
      return await this.idempotency.answer(key, order, async ({ manager }) =>
        toOrder(await manager.save(manager.create(OrderEntity, row))),
      );
    } catch (error) {
      if (error instanceof QueryFailedError && (error.driverError as { code?: unknown }).code === NO_REFERENCE) {
        throw new ApiError(NO_SUCH_PET, `There is no animal ${order.petId}.`);
      }
      throw error;
    }
  }
}
