import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiCreatedResponse, ApiOperation } from '@nestjs/swagger';
import {
  FailsWith,
  type IdempotencyKey,
  Idempotent,
  type Kept,
  type Page,
  Paged,
  RequireScopes,
  Tag,
} from 'petstore-service/platform';
import { ListOrdersQuery, NewOrder, Order } from './order.dto.js';
import { NO_SUCH_PRODUCT, OrdersService } from './orders.service.js';

@Tag('Orders', 'Products that are ordered.')
@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Get()
  @RequireScopes('orders:read')
  @ApiOperation({ summary: 'List orders', description: 'One page of the orders, oldest first.' })
  @Paged(Order, 'A page of orders, oldest first.')
  listOrders(@Query() query: ListOrdersQuery): Promise<Page<Order>> {
    return this.orders.list(query);
  }

  @Post()
  @RequireScopes('orders:write')
  @FailsWith(NO_SUCH_PRODUCT)
  @ApiOperation({ summary: 'Place an order', description: 'Orders a product.' })
  @ApiCreatedResponse({ type: Order, description: 'The placed order.' })
  placeOrder(@Body() order: NewOrder, @Idempotent() key: IdempotencyKey | undefined): Promise<Kept<Order>> {
    return this.orders.place(order, key);
  }
}
