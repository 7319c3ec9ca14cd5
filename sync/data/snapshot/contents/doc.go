/*
Package contents finds what belongs to an application: its components, the claims and the
configuration that its Pods use, and what it was installed by.

Components are found as the Application controller finds them, by annotation and by package membership,
but from the objects themselves: the status of the Application may be outdated, or there
may be none. An Application that is a component belongs with its own components. From the components it
goes on to

  - the Pods that they control, over any number of steps, and Pods that are components themselves;
  - the PersistentVolumeClaims of these Pods and of the Pod templates, and those of volumeClaimTemplates:
    of the replicas that there are or, of a StatefulSet that is scaled to zero, all that exist;
  - ConfigMaps, Secrets and ServiceAccounts that the Pod templates name, and those of Pods that no
    template of the application describes. What admission adds to a Pod, it adds again;
  - RoleBindings of these ServiceAccounts, and their Roles;
  - the ApplicationInstallation that the annotation apps.waybill.dev/owner names, with the objects in its
    valuesFrom.

Nothing is followed into another namespace. What another object of the application controls is left
out, as it comes with that. An object that is named and missing is no error, or an application that is
broken could not be rolled back: Contents.Left lists it, with all that is left out on purpose.

What is read is read with the rights of the Reader, in the namespace of the Application, one list for
each kind. The only exception is the PersistentVolume of a claim, for the name of its driver, which stays
empty where PersistentVolumes may not be read. Any other object that may not be read is an error.
*/
package contents
