/** What carries out the operations of a model, by their name. */
export type OperationHandlers<Operation extends { do: string }, World, More extends unknown[] = []> = {
  readonly [Name in Operation['do']]: (world: World, operation: OperationNamed<Operation, Name>, ...more: More) => void;
};

type OperationNamed<Operation, Name> = Operation extends { do: infer Names }
  ? Name extends Names
    ? Operation
    : never
  : never;
