export declare function int64MembersOf(document: object): string[];
