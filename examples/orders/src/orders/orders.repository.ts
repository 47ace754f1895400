import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type IdempotencyKey, type Kept, type Page, SharedRepository } from 'petstore-service/platform';
import { Repository } from 'typeorm';
import { type ListOrdersQuery, type NewOrder, type Order, toOrder } from './order.dto.js';
import { OrderEntity } from './order.entity.js';

/** Stores and reads orders. */
@Injectable()
export class OrdersRepository extends SharedRepository<OrderEntity, Order> {
  constructor(@InjectRepository(OrderEntity) orders: Repository<OrderEntity>) {
    super(orders, toOrder);
  }

  /** @throws ApiError INVALID_CURSOR */
  list(query: ListOrdersQuery): Promise<Page<Order>> {
    return this.page(query, { productId: query.productId });
  }

  /** Stores an order, once for its key, and returns it as it was stored first. */
  insert(order: NewOrder, orderedAt: Date, key: IdempotencyKey | undefined): Promise<Kept<Order>> {
    return this.idempotency.answer(key, order, async ({ manager }) => {
      const row = { productId: String(order.productId), quantity: order.quantity, orderedAt };
      return toOrder(await manager.save(manager.create(OrderEntity, row)));
    });
  }
}
