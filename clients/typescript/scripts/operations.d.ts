export declare function operationsWithoutMethod(document: object, source: string): string[];
