import { type KubeObject, isBeingDeleted, objectKey } from '../../../../api/meta.js';
import type { Kind, ClaimsWorld } from './world.js';

const COLLECTED: readonly Kind[] = ['vms', 'vmis', 'launchers', 'claims'];

/** Performs one step of Kubernetes' garbage collector, on the first object that needs one. Returns whether there was any. */
export function collectGarbage(world: ClaimsWorld): boolean {
  return COLLECTED.some((kind) => world.list(kind).some((object) => collect(world, kind, object)));
}

function collect(world: ClaimsWorld, kind: Kind, object: KubeObject): boolean {
  const finalizers = object.metadata.finalizers ?? [];
  if (isBeingDeleted(object) && finalizers.includes('orphan')) return orphan(world, kind, object);
  if (isBeingDeleted(object) && finalizers.includes('foregroundDeletion'))
    return deleteInForeground(world, kind, object);
  const owners = object.metadata.ownerReferences ?? [];
  if (isBeingDeleted(object) || owners.length === 0 || owners.some(({ uid }) => world.hasUid(uid))) return false;
  world.delete(kind, objectKey(object));
  return true;
}

/** Removes the owner reference of one dependent at each step; then the owner is deleted. */
function orphan(world: ClaimsWorld, kind: Kind, owner: KubeObject): boolean {
  const [dependent] = dependentsOf(world, owner);
  if (dependent === undefined) {
    world.dropFinalizers(kind, objectKey(owner), 'orphan');
    return true;
  }
  world.update(dependent.kind, objectKey(dependent.object), ({ metadata }) => {
    const left = (metadata.ownerReferences ?? []).filter(({ uid }) => uid !== owner.metadata.uid);
    if (left.length > 0) metadata.ownerReferences = left;
    else delete metadata.ownerReferences;
  });
  return true;
}

function deleteInForeground(world: ClaimsWorld, kind: Kind, owner: KubeObject): boolean {
  const dependents = dependentsOf(world, owner);
  const living = dependents.find(({ object }) => !isBeingDeleted(object));
  if (living !== undefined) {
    world.delete(living.kind, objectKey(living.object));
    return true;
  }
  const blocking = dependents.some(({ object }) =>
    object.metadata.ownerReferences?.some(
      ({ uid, blockOwnerDeletion }) => uid === owner.metadata.uid && blockOwnerDeletion,
    ),
  );
  if (blocking) return false;
  world.dropFinalizers(kind, objectKey(owner), 'foregroundDeletion');
  return true;
}

function dependentsOf(world: ClaimsWorld, owner: KubeObject): { kind: Kind; object: KubeObject }[] {
  return COLLECTED.flatMap((kind) =>
    world
      .list(kind)
      .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid))
      .map((object) => ({ kind, object })),
  );
}
