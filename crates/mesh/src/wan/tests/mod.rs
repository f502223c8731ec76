mod dialled;
mod kit;
mod nodes;
mod served;
mod stock;
mod warrens;
