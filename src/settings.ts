import { nameProduct } from '#settings';

nameProduct({ name: 'petstore', apiKeyPrefix: 'pets_' });
